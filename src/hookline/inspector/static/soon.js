/** A function that does the work a little later, once for all who asked in the meantime. */
export function soon(work, failed, pause = 200) {
  let timer;
  return () => {
    timer ??= setTimeout(async () => {
      timer = undefined;
      try {
        await work();
      } catch (problem) {
        failed(problem);
      }
    }, pause);
  };
}
