/**
 * How long a test waits for what must come, in milliseconds: a last resort against hanging, however much else the
 * machine has to do. Vitest's own limits are longer, so that the error says what was waited for.
 */
export const PATIENCE_MS = 120_000;

/** Polls until the condition holds. @throws after `withinMs`, saying what was waited for. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
