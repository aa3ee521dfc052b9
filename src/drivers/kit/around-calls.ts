import type { Call } from '../../orchestrator/model/platform-driver.ts';

/** Runs one call of a driver. `name`: such as `volumes.create`; `limitsAt`: the place of its {@link Call}, if it has one. */
type Around = (
  call: { name: string; args: readonly unknown[]; limitsAt: number | undefined },
  run: (args: readonly unknown[]) => unknown,
) => unknown;

/** How many arguments precede the limits of each call that changes something. */
const LIMITS_AT: Readonly<Record<string, number>> = {
  create: 2,
  stop: 2,
  start: 2,
  restart: 3,
  destroy: 3,
  disown: 2,
  'volumes.create': 2,
  'volumes.attach': 3,
  'volumes.detach': 3,
  'volumes.resize': 3,
  'volumes.copy': 3,
  'volumes.destroy': 3,
};

/** The driver, whose methods and those of its volumes are run by `around`. */
export function aroundCalls<Methods extends object>(of: Methods, around: Around, prefix = ''): Methods {
  return new Proxy(of, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      if (key === 'volumes' && member !== undefined) return aroundCalls(member as object, around, 'volumes.');
      if (typeof member !== 'function') return member;
      const name = `${prefix}${String(key)}`;
      return (...args: unknown[]) =>
        around({ name, args, limitsAt: LIMITS_AT[name] }, (given) => Reflect.apply(member, target, given));
    },
  });
}

/** The driver, with limits from `next` in each call that changes something and has none. */
export function withCalls<Methods extends object>(driver: Methods, next: () => Call): Methods {
  return aroundCalls(driver, ({ args, limitsAt }, run) => {
    if (limitsAt === undefined || args[limitsAt] !== undefined) return run(args);
    const given = [...args];
    given[limitsAt] = next();
    return run(given);
  });
}
