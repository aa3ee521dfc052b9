/** The store cannot be read or written now. Never a reason to say that something does not exist, or has changed. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}

/** A reason to end with a sentence for the person at the terminal, and exit code 1. */
export class Fatal extends Error {
  override readonly name: string = 'Fatal';
}

/** It is in order, and another process has it, as a `berth serve` that runs has. */
export class InUse extends Fatal {
  override readonly name: string = 'InUse';
}
