/** Variables that every program of a driver gets. They contain no secrets. */
const USUAL = ['PATH', 'HOME', 'LANG', 'TZ'];

/** The variables that are set, out of the usual ones and `others`. */
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
