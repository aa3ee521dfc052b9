/** The same reader or transaction, but each call of a method of a part goes through `around`; `call` may take other arguments. */
export function interceptMethods<Parts extends object, Part extends string = string>(
  target: Parts,
  around: (
    part: Part,
    name: string,
    call: (changed?: readonly unknown[]) => Promise<unknown>,
    args: readonly unknown[],
  ) => Promise<unknown>,
): Parts {
  return new Proxy(target, {
    get: (whole, part: string, receiver) => {
      const methods: unknown = Reflect.get(whole, part, receiver);
      if (typeof methods !== 'object' || methods === null) return methods;
      return new Proxy(methods, {
        get: (of, name: string) => {
          const method: unknown = Reflect.get(of, name);
          if (typeof method !== 'function') return method;
          return (...args: unknown[]) =>
            around(part as Part, name, (changed = args) => Reflect.apply(method, of, changed), args);
        },
      });
    },
  });
}
