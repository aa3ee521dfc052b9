/** Formats a count with its noun: `1 instance`, `2 instances`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
