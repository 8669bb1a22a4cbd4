/**
 * A function that does the work a little later, once for all who asked in the meantime. It is never done
 * twice at a time: an answer that took long must not be shown after a newer one.
 */
export function soon(work, failed, pause = 200) {
  let waiting = false;
  let working = false;
  const start = () => setTimeout(async () => {
    waiting = false;
    working = true;
    try {
      await work();
    } catch (problem) {
      failed(problem);
    }
    working = false;
    if (waiting) start();
  }, pause);
  return () => {
    if (!waiting && !working) start();
    waiting = true;
  };
}
