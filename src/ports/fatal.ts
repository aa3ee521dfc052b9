/** A reason to end with a sentence for the person at the terminal, and exit code 1. */
export class Fatal extends Error {
  override readonly name: string = 'Fatal';
}
