/**
 * `target` with some members replaced. All other members are read from `target` at each use: getters run again, and
 * methods are bound to `target`.
 */
export function withOverrides<Target extends object>(target: Target, overrides: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_target, name) => {
      if (Object.hasOwn(overrides, name)) return Reflect.get(overrides, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
