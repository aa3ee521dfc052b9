export interface AccountRecord {
  id: string;
  /** Unique; also the username of POST /auth/token. */
  name: string;
  /** scrypt, in its own text form; null: no password login. */
  passwordHash: string | null;
  createdAt: number;
}

/** An API key as stored: never the key itself. */
export interface ApiKeyRecord {
  id: string;
  accountId: string;
  /** SHA-256 of the whole key. */
  digest: Buffer;
  prefix: string;
  lastFour: string;
  label: string | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

/** A short-lived token of POST /auth/token; it dies with the credential that bought it. */
export interface TokenRecord {
  digest: Buffer;
  accountId: string;
  /** Digest of the API key, or of the account's password hash. */
  parentDigest: Buffer;
  createdAt: number;
  expiresAt: number;
}
