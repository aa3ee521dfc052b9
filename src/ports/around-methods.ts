type Method = (...args: unknown[]) => Promise<unknown>;

/** A copy of `repository`, an object of asynchronous functions, whose calls run in `around`. */
export function aroundMethods<Repository extends object>(
  repository: Repository,
  around: (call: () => Promise<unknown>, name: string, args: readonly unknown[]) => Promise<unknown>,
): Repository {
  const methods = Object.entries(repository as Record<string, Method>);
  return Object.fromEntries(
    methods.map(([name, method]): [string, Method] => [
      name,
      (...args) => around(() => method(...args), name, args),
    ]),
  ) as Repository;
}
