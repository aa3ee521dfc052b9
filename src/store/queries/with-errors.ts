/** `part` with what its methods throw translated. */
export function withErrors<Part extends object>(part: Part, translate: (error: unknown) => unknown): Part {
  return new Proxy(part, {
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
