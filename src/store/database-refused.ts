/** Why a database cannot be opened, in one sentence with the remedy. Nothing was changed. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
}
