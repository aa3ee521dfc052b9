/** Runs tasks with the same name one at a time, in order. */
type Turns = <T>(name: string, task: () => Promise<T>) => Promise<T>;

export function createTurns(): Turns {
  const tails = new Map<string, Promise<unknown>>();
  return (name, task) => {
    const before = tails.get(name) ?? Promise.resolve();
    const next = before.then(task, task);
    const tail = next.catch(() => {});
    tails.set(name, tail);
    void tail.then(() => tails.get(name) === tail && tails.delete(name));
    return next;
  };
}
