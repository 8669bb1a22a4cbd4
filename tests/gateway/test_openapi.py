"""The OpenAPI description is true: requests made from it get only what it says."""

from hypothesis import HealthCheck, Phase, given, settings

from .conftest import bearer
from .test_process import gateway

SCRIPT = 'repeat = true\n[[turns]]\ntext = "Yes."\n'
EXAMPLES = 12


def has_input(operation) -> bool:
    return bool([*operation.iter_parameters(), *operation.body])


def test_requests_made_from_the_description_get_only_documented_answers(tmp_path):
    import schemathesis  # every worker would import it with the module, and one runs it
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    limits = {"GATEWAY__REQUESTS_PER_MINUTE": "0"}
    with gateway(tmp_path, SCRIPT, **limits) as (process, url):
        schema = schemathesis.openapi.from_url(f"{url}openapi.json", headers=bearer())
        tried = []
        for found in schema.get_all_operations():
            operation = found.ok()
            tried.append(operation.label)
            right, wrong = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

            @settings(
                max_examples=EXAMPLES,
                database=None,
                derandomize=True,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=right | wrong if has_input(operation) else right)
            def attempt(case):
                # A schema cannot say that a message is not empty, or that base 64 is base 64.
                case.call_and_validate(excluded_checks=[positive_data_acceptance], headers=bearer())

            attempt()
        assert process.poll() is None
    assert "POST /api/sessions/{session}/messages" in tried
    assert "POST /v1/chat/completions" in tried
    assert len(tried) == 12
