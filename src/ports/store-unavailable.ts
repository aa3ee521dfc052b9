/** The store cannot be read or written now. Never a reason to say that something does not exist, or has changed. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}
