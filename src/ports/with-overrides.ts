/**
 * `target` with some of its members replaced. All else is the target's own at each use: getters run anew, and methods of
 * a class have their instance.
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
