/** Compares names by the numbers in them: `host-2` sorts before `host-12`. */
export const compareNames = new Intl.Collator('en', { numeric: true }).compare;

export function sortNames(names: Iterable<string>): string[] {
  return [...names].sort(compareNames);
}
