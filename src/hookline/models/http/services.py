"""The services that are known by name: the one table of prefixes, addresses, keys and families."""

from __future__ import annotations

from typing import Any, Final

COMPATIBLE: Final = "openai-compatible"

SERVICES: Final[dict[str, dict[str, Any]]] = {
    "openai": {
        "base_url": "https://api.openai.com/v1",
        "url_env": "OPENAI_BASE_URL",
        "key_envs": ("OPENAI_API_KEY",),
        "needs_key": True,
        "summary": "OpenAI: openai:MODEL",
        "effort": True,
        "longest": "max_completion_tokens",
        "cache_key": True,
        "output": True,
        "family": r"gpt|chatgpt|codex|o[0-9]",
    },
    "openai-responses": {
        "api": "responses",
        "path": "/responses",
        "base_url": "https://api.openai.com/v1",
        "url_env": "OPENAI_BASE_URL",
        "key_envs": ("OPENAI_API_KEY",),
        "needs_key": True,
        "summary": "OpenAI's Responses API: openai-responses:MODEL",
        "output": True,
    },
    "anthropic": {
        "api": "messages",
        "path": "/v1/messages",
        "models": "/v1/models?limit=1000",
        "base_url": "https://api.anthropic.com",
        "url_env": "ANTHROPIC_BASE_URL",
        "key_envs": ("ANTHROPIC_API_KEY",),
        "needs_key": True,
        "summary": "Anthropic: anthropic:MODEL",
        "family": r"claude",
    },
    "google": {
        "api": "gemini",
        "path": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "models": "/v1beta/models?pageSize=1000",
        "base_url": "https://generativelanguage.googleapis.com",
        "url_env": "GOOGLE_GEMINI_BASE_URL",
        "key_envs": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "needs_key": True,
        "summary": "Google Gemini: google:MODEL",
        "family": r"gemini",
    },
    "openrouter": {
        "base_url": "https://openrouter.ai/api/v1",
        "key_envs": ("OPENROUTER_API_KEY",),
        "needs_key": True,
        "summary": "OpenRouter: openrouter:VENDOR/MODEL",
        "effort": True,
        "no_effort": "none",
    },
    "groq": {
        "base_url": "https://api.groq.com/openai/v1",
        "key_envs": ("GROQ_API_KEY",),
        "needs_key": True,
        "summary": "Groq: groq:MODEL",
        "effort": True,
    },
    "deepseek": {
        "base_url": "https://api.deepseek.com/v1",
        "key_envs": ("DEEPSEEK_API_KEY",),
        "needs_key": True,
        "summary": "DeepSeek: deepseek:MODEL",
        "effort": True,
        "thoughts": True,
        "family": r"deepseek",
    },
    "ollama": {
        "base_url": "http://localhost:11434/v1",
        "key_envs": ("OLLAMA_API_KEY",),
        "summary": "an Ollama server on this machine: ollama:MODEL",
        "effort": True,
        "no_effort": "none",
        "output": True,
        "family": r"gpt-oss|llama|qwen|phi|gemma",
    },
    "vllm": {
        "base_url": "http://localhost:8000/v1",
        "key_envs": ("VLLM_API_KEY",),
        "summary": "a vLLM server on this machine: vllm:MODEL",
        "effort": True,
        "output": True,
    },
    "llamacpp": {
        "base_url": "http://localhost:8080/v1",
        "key_envs": ("LLAMA_API_KEY",),
        "summary": "a llama.cpp server on this machine: llamacpp:MODEL",
        "output": True,
    },
    "lmstudio": {
        "base_url": "http://localhost:1234/v1",
        "key_envs": ("LMSTUDIO_API_KEY",),
        "summary": "an LM Studio server on this machine: lmstudio:MODEL",
        "output": True,
    },
    COMPATIBLE: {
        "summary": f"any such endpoint: {COMPATIBLE}:URL#MODEL",
        "effort": True,
    },
}
"""The facts about each service: the fields of `HttpService`, without its name."""
