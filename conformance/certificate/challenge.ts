import { randomBytes, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { hasDuplicateNames, parseJson } from '../text/json.ts';
import { Draws } from '../transcript/draws.ts';
import { LEVELS, type Level } from '../transcript/records.ts';
import { digestOf, sha256 } from './digest.ts';
import { CertificateError, isBase64, keyOf, publicKeyText, readPrivateKey } from './sign.ts';

const MS_PER_HOUR = 3_600_000;

const format = z.strictObject({
  format: z.literal(1),
  /** 32 random bytes, hex. A run draws its names, order, moments and samples from it. */
  nonce: z.string().regex(/^[0-9a-f]{64}$/),
  /** The level of the run. */
  level: z.enum(LEVELS),
  /** The target; absent: any. */
  base_url: z.string().exactOptional(),
  /** RFC 3339. */
  issued_at: z.iso.datetime(),
  /** The run must have ended by then. */
  expires_at: z.iso.datetime(),
  signature: z.strictObject({
    algorithm: z.literal('Ed25519'),
    /** The 32 bytes of the key, in base64. */
    public_key: z.string().refine(isBase64),
    value: z.string().refine(isBase64),
  }),
});

/** What a marketplace asks a run to answer. */
export type Challenge = z.infer<typeof format>;

export interface ChallengeTerms {
  level: Level;
  baseUrl?: string | undefined;
  validHours: number;
  /** Milliseconds since the epoch. */
  wall: number;
}

/** Issues a challenge with a fresh nonce. @throws {CertificateError} if the key is not an Ed25519 key in PEM */
export function issueChallenge(
  { level, baseUrl, validHours, wall }: ChallengeTerms,
  privateKeyPem: string,
): Challenge {
  const key = readPrivateKey(privateKeyPem);
  const terms = {
    format: 1,
    nonce: randomBytes(32).toString('hex'),
    level,
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    issued_at: new Date(wall).toISOString(),
    expires_at: new Date(wall + validHours * MS_PER_HOUR).toISOString(),
    signature: { algorithm: 'Ed25519', public_key: publicKeyText(key) },
  } as const;
  const value = sign(null, messageOf(digestOf(terms)), key).toString('base64');
  return { ...terms, signature: { ...terms.signature, value } };
}

/** A challenge whose signature is good. */
export interface ReadChallenge {
  challenge: Challenge;
  /** The digest of all but `signature.value`: it is what was signed, and what the run names. Hex. */
  digest: string;
  /** What the run draws. */
  draws: Draws;
}

/**
 * Reads a challenge, and checks its signature. `trusted` is the required public key.
 * @throws {CertificateError} if it is not a challenge, or not what that key signed
 */
export function readChallenge(text: string, trusted?: string): ReadChallenge {
  const value = parseJson(text);
  const parsed = format.safeParse(value);
  if (!parsed.success || hasDuplicateNames(text, value))
    throw new CertificateError('the challenge is not one that `berth conformance challenge` wrote');
  const challenge = parsed.data;
  const { value: signature, ...statement } = challenge.signature;
  if (trusted !== undefined && trusted !== statement.public_key)
    throw new CertificateError('the challenge was signed with another key');
  const digest = digestOf({ ...challenge, signature: statement });
  const key = keyOf(statement.public_key);
  if (!verify(null, messageOf(digest), key, Buffer.from(signature, 'base64')))
    throw new CertificateError('the challenge is not what was signed');
  return { challenge, digest, draws: drawsOf(challenge) };
}

/** What a run for this challenge draws. */
function drawsOf({ nonce }: Challenge): Draws {
  return new Draws(sha256(`berth-conformance-seed/1\n${nonce}`));
}

function messageOf(digest: string): Buffer {
  return Buffer.from(`berth-conformance-challenge/1\n${digest}`);
}

/**
 * Refuses a challenge that a run of this kind cannot answer.
 * @throws {CertificateError} if it has expired or is not valid yet, or is for another level or target
 */
export function refuseOtherRun(
  { level, base_url, issued_at, expires_at }: Challenge,
  run: { level: Level; baseUrl: string; wall: number },
): void {
  if (run.level !== level)
    throw new CertificateError(
      `the challenge is for level ${level}, and the run would be of level ${run.level}: give --level ${level}`,
    );
  if (base_url !== undefined && base_url !== run.baseUrl)
    throw new CertificateError(`the challenge is for ${base_url}, and not for ${run.baseUrl}`);
  if (!(run.wall < Date.parse(expires_at)))
    throw new CertificateError(`the challenge expired at ${expires_at}: ask for another`);
  if (!(run.wall >= Date.parse(issued_at)))
    throw new CertificateError(
      `the challenge is of ${issued_at}, and this clock shows ${new Date(run.wall).toISOString()}: set the clock`,
    );
}
