/** What every program that a driver runs is given of Berth's environment: no secret is in these. */
const USUAL = ['PATH', 'HOME', 'LANG', 'TZ'];

/** Those of the usual variables, and of the others that are named, that are set. */
export function usualEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  others: readonly string[] = [],
): Record<string, string> {
  return Object.fromEntries(
    [...USUAL, ...others].flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
