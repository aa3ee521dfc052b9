/** The ledger cannot be written: nothing more is bought. It is the set-up's, and its message says what to do. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
}
