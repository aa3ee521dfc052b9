import type { AccountRecord, ApiKeyRecord, TokenRecord } from './records.ts';

export interface CredentialReader {
  accountById(id: string): Promise<AccountRecord | null>;
  accountByName(name: string): Promise<AccountRecord | null>;
  listAccounts(): Promise<AccountRecord[]>;
  /** Finds a key. A key of a closed account reads as revoked. */
  keyByDigest(digest: Buffer): Promise<ApiKeyRecord | null>;
  listKeys(accountId?: string): Promise<ApiKeyRecord[]>;
  tokenByDigest(digest: Buffer): Promise<TokenRecord | null>;
}
export interface CredentialWriter extends CredentialReader {
  insertAccount(record: Omit<AccountRecord, 'closedAt'>): Promise<void>;
  setPasswordHash(accountId: string, hash: string): Promise<void>;
  insertKey(record: ApiKeyRecord): Promise<void>;
  revokeKey(id: string, at: number): Promise<void>;
  recordKeyUse(id: string, at: number): Promise<void>;
  /** Revokes each key of an account, removes its password and deletes its tokens. */
  endAccess(accountId: string, at: number): Promise<void>;
  /** Closes an account for good. An account that is already closed keeps its first time. */
  closeAccount(accountId: string, at: number): Promise<void>;
  /** Deletes the rows of closed accounts that have no resources left, not even tombstones. */
  deleteClosedAccounts(): Promise<void>;
  /**
   * Deletes an account with its keys. Returns false if it has instances or volumes (tombstones count): it is left
   * unchanged.
   */
  deleteAccount(accountId: string): Promise<boolean>;
  insertToken(record: TokenRecord): Promise<void>;
  /** Deletes the tokens of an account that the credential with that digest obtained. */
  deleteTokensBoughtWith(accountId: string, parentDigest: Buffer): Promise<void>;
  deleteTokensExpiredBefore(time: number): Promise<void>;
}
