import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { toJson } from '../report/model.ts';
import type { Report } from '../report/report.ts';
import { hasDuplicateNames, isObject, parseJson } from '../text/json.ts';
import { sha256 } from './digest.ts';
import { parseReport } from './read-report.ts';
import { CertificateError, isBase64, keyOf, readPrivateKey, verifySignature } from './sign.ts';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
/** docs/certification.md describes the predicate. */
const PREDICATE_TYPE = 'urn:berth:conformance:attestation:1';

const envelope = z.strictObject({
  payload: z.string().refine(isBase64),
  payloadType: z.literal(PAYLOAD_TYPE),
  signatures: z.tuple([z.strictObject({ keyid: z.string(), sig: z.string().refine(isBase64) })]),
});

const statement = z.strictObject({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.tuple([z.strictObject({ name: z.string(), digest: z.strictObject({ sha256: z.string() }) })]),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: z.strictObject({ report: z.unknown() }),
});

/**
 * A signed report as a DSSE envelope around an in-toto statement, signed with the same key. The subject is the base URL of
 * the target, with the SHA-256 of the file that `--json` writes; that report is the predicate.
 * @throws {CertificateError} if the key is not an Ed25519 key in PEM
 */
export function toAttestation(report: Report, privateKeyPem: string): string {
  const key = readPrivateKey(privateKeyPem);
  const payload = Buffer.from(
    JSON.stringify({
      _type: STATEMENT_TYPE,
      subject: [{ name: report.base_url, digest: { sha256: sha256(toJson(report)) } }],
      predicateType: PREDICATE_TYPE,
      predicate: { report },
    } satisfies z.input<typeof statement>),
  );
  const sealed = {
    payload: payload.toString('base64'),
    payloadType: PAYLOAD_TYPE,
    signatures: [
      { keyid: keyIdOf(createPublicKey(key)), sig: sign(null, signedBytes(payload), key).toString('base64') },
    ],
  } satisfies z.input<typeof envelope>;
  return `${JSON.stringify(sealed, null, 2)}\n`;
}

/** Whether a text is a DSSE envelope, and not a report. */
export function isAttestation(text: string): boolean {
  const value = parseJson(text);
  return isObject(value) && 'payloadType' in value;
}

/**
 * The report in an envelope. Both signatures, of the envelope and of the report, must be of one key.
 * @throws {CertificateError} if it is not what `toAttestation` wrote
 */
export function readAttestation(text: string): Report {
  const sealed = readAs(envelope, text, 'a DSSE envelope of `berth conformance --attestation`');
  const payload = Buffer.from(sealed.payload, 'base64');
  const said = payload.toString('utf8');
  const { subject, predicate } = readAs(statement, said, 'the in-toto statement of such an envelope');
  const read = parseReport(JSON.stringify(predicate.report));
  if ('problem' in read) throw new CertificateError(`in its predicate, ${read.problem}`);
  const { report } = read;
  const { publicKey } = verifySignature(report);
  const key = keyOf(publicKey);
  const [{ keyid, sig }] = sealed.signatures;
  if (keyid !== keyIdOf(key)) throw new CertificateError('its envelope names another key than its report');
  if (!verify(null, signedBytes(payload), key, Buffer.from(sig, 'base64')))
    throw new CertificateError('its envelope is not what was signed');
  const [{ name, digest }] = subject;
  if (name !== report.base_url || digest.sha256 !== sha256(toJson(report)))
    throw new CertificateError('its subject is not its report');
  return report;
}

function readAs<T>(form: z.ZodType<T>, text: string, what: string): T {
  const value = parseJson(text);
  const parsed = form.safeParse(value);
  if (!parsed.success || hasDuplicateNames(text, value)) throw new CertificateError(`it is not ${what}`);
  return parsed.data;
}

/** The pre-authentication encoding of DSSE 1. */
function signedBytes(payload: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `),
    payload,
  ]);
}

/** SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex. */
function keyIdOf(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ format: 'der', type: 'spki' }))
    .digest('hex');
}
