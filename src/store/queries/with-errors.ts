/** Returns the repository with the errors of its methods translated. */
export function withErrors<Repository extends object>(
  repository: Repository,
  translate: (error: unknown) => unknown,
): Repository {
  return new Proxy(repository, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) =>
        Promise.resolve(Reflect.apply(method, target, args)).catch((error) =>
          Promise.reject(translate(error)),
        );
    },
  });
}
