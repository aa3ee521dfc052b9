import { EXIT } from '../verdict/outcome.ts';

/** A reason to end with a sentence for the person at the terminal. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.configuration) {
    super(message);
    this.exitCode = exitCode;
  }
}
