/** The user id of `nobody`, which is also its group id, on most systems. */
export const ORDINARY_USER = 65_534;

/** Runs `work` as an ordinary user, whose access the system checks: root may read and write every file. */
export async function asOrdinaryUser<T>(work: () => T | Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(ORDINARY_USER);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}
