import { PATIENCE_MS } from './patience.ts';

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
