import type { Step } from '../../orchestrator/model/platform-driver.ts';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The answer of a read. A failed read answers unknown, which never proves absence. */
export async function orUnknown<Answer extends { answer: string }>(
  read: () => Promise<Answer>,
  reasonOf = messageOf,
): Promise<Answer | { answer: 'unknown'; reason: string }> {
  try {
    return await read();
  } catch (error) {
    return { answer: 'unknown', reason: reasonOf(error) };
  }
}

/** The outcome of a step. `toFailure` classifies an error, or throws it: the core then treats the outcome as unknown. */
export async function orFailure<T>(
  step: () => Promise<Step<T>>,
  toFailure: (error: unknown) => Step<never>,
): Promise<Step<T>> {
  try {
    return await step();
  } catch (error) {
    return toFailure(error);
  }
}
