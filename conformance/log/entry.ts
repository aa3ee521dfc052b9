import { z } from 'zod';
import { digestOf, REDACTED, redactedIn } from '../certificate/digest.ts';
import { CertificateError, verifySignature } from '../certificate/sign.ts';
import type { Report } from '../report/report.ts';
import { isObject, parseJson } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { MAX_ENTRY_BYTES } from './bundle.ts';

/**
 * What an entry shows of a report; its other fields are replaced by their digests, as `redact` does, so the signature of
 * the report is the signature of the entry.
 */
const SHOWN = [
  'format',
  'outcome',
  'level',
  'only',
  'base_url',
  'challenge_sha256',
  'started_at',
  'run_id',
  'judged_by',
  'suite_version',
  'contract_version',
  'requirements_digest',
  'counts',
  'signature',
] as const satisfies readonly (keyof Report)[];

/** These may be removed from a report, and then are from its entry. */
const MAY_BE_REMOVED = ['base_url'];

const shownReport = z.looseObject({
  format: z.literal(1),
  outcome: z.enum(['CONFORMANT', 'NON-CONFORMANT', 'INCOMPLETE']),
  level: z.string(),
  base_url: z.unknown(),
  challenge_sha256: z.string().optional(),
  started_at: z.string(),
  run_id: z.string(),
  suite_version: z.string(),
  contract_version: z.string(),
  requirements_digest: z.string(),
  signature: z.looseObject({ public_key: z.string(), value: z.string() }),
});

/** An entry of the log. */
export interface Entry {
  /** As it is in the log: JSON without spaces, names sorted by UTF-16 code units. */
  bytes: Buffer;
  report: z.infer<typeof shownReport>;
  /** The digest of the signed report; it is the same whatever was removed from it. */
  digest: string;
}

/** The entry of a signed report. @throws {CertificateError} if it is not signed, or too large for an entry */
export function toEntry(report: Report): Entry {
  verifySignature(report);
  const entry = Object.fromEntries(
    Object.entries(report).map(([name, value]) => [
      name,
      isShown(name) ? value : { [REDACTED]: digestOf(value) },
    ]),
  );
  const bytes = Buffer.from(canonical(entry));
  if (bytes.length > MAX_ENTRY_BYTES)
    throw new CertificateError(
      `its entry would have ${bytes.length} bytes, and ${MAX_ENTRY_BYTES} is the most`,
    );
  return parseEntry(bytes);
}

/** Reads an entry, and checks its signature. @throws {CertificateError} if it is not one that `toEntry` makes */
export function parseEntry(bytes: Buffer): Entry {
  const report = parseJson(bytes.toString('utf8'));
  if (!isObject(report) || !Buffer.from(canonical(report)).equals(bytes))
    throw new CertificateError('it is not JSON in canonical form');
  const wrong = Object.entries(report).find(
    ([name, value]) => isRemoved(value) === isShown(name) && !MAY_BE_REMOVED.includes(name),
  );
  const shown = shownReport.safeParse(report);
  const field = wrong?.[0] ?? shown.error?.issues[0]?.path.join('/');
  if (shown.data === undefined || field !== undefined)
    throw new CertificateError(`its field ${printable(String(field), 60)} is not as an entry has it`);
  verifySignature(report, undefined, isHidden);
  return { bytes, report: shown.data, digest: digestOf(report) };
}

/** Whether these bytes may be the entry of this report: fast, and never wrong about an entry that is. */
export function mayBeEntryOf(bytes: Buffer, { signature }: Entry['report']): boolean {
  return bytes.includes(JSON.stringify(signature.value));
}

/** The entry, or undefined if these bytes are none. */
export function tryEntry(bytes: Buffer): Entry | undefined {
  try {
    return parseEntry(bytes);
  } catch (error) {
    if (error instanceof CertificateError) return undefined;
    throw error;
  }
}

/** Whole fields only, so that no part of what is shown is hidden. */
function isHidden(path: string): boolean {
  const name = path.slice(1);
  return !name.includes('/') && (!isShown(name) || MAY_BE_REMOVED.includes(name));
}

const isShown = (name: string): boolean => (SHOWN as readonly string[]).includes(name);

const isRemoved = (value: unknown): boolean => redactedIn(value)[0] === '';

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const names = Object.keys(value).toSorted();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}
