import { z } from 'zod';
import { hasDuplicateNames, isObject, parseJson } from '../../text/json.ts';
import { rule } from '../rules.ts';
import type { Certificate } from './certificate.ts';

const count = z.int().min(0);
const share = { good: count, of: count, share: z.number().min(0).max(1).nullable() };
const day = z.iso.date();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The certificate as JSON. Unknown fields are refused: they would be signed without a meaning. */
const certificateSchema = z.strictObject({
  format: z.literal(1),
  kind: z.literal('berth-conformance-monitor'),
  provider: z.string(),
  base_url: z.string(),
  status: z.enum(['certified', 'revoked', 'not enough']),
  because: z.array(z.string()),
  suite_version: z.string(),
  requirements_digest: sha256,
  contract_version: z.string(),
  issued_at: z.iso.datetime(),
  window: z.strictObject({ from: day, to: day, days: z.number().positive() }),
  probes: z.strictObject({ reads: count, machines: count, cut_short: count }),
  checks: z.array(
    z.strictObject({
      id: z.string(),
      level: z.enum(['MUST', 'SHOULD']),
      means: z.string(),
      pass: count,
      fail: count,
      warn: count,
    }),
  ),
  latency_ms: z.strictObject({ reads: count, p50: z.number(), p95: z.number(), p99: z.number() }).nullable(),
  answered: z.strictObject(share),
  reached: z.strictObject(share),
  stocked: z.strictObject(share),
  priced: z.strictObject(share),
  clean: z.strictObject({ ...share, not_tested: z.string().exactOptional() }),
  spend: z.strictObject({ usd: z.number().min(0), budget_usd_per_day: z.number().positive() }),
  faults: z.array(
    z.strictObject({
      verdict: z.enum(['fail', 'warn']),
      check: z.string(),
      expected: z.string(),
      actual: z.string(),
      request: z.string().exactOptional(),
      day,
      transcript_sha256: sha256.exactOptional(),
    }),
  ),
  more_faults: count,
  rules: z.array(rule),
  signature: z
    .strictObject({ algorithm: z.literal('Ed25519'), public_key: z.string(), value: z.string() })
    .exactOptional(),
});

/** Reads a certificate. A text that two readers could understand differently is refused. */
export function parseCertificate(text: string): { certificate: Certificate } | { problem: string } {
  const value = parseJson(text);
  if (!isObject(value)) return { problem: 'it is not a JSON object' };
  if (hasDuplicateNames(text, value)) return { problem: 'an object in it has two fields of one name' };
  const { data, error } = certificateSchema.safeParse(value);
  if (data !== undefined) return { certificate: data };
  const [issue] = error.issues;
  return { problem: `${issue?.path.join('.') || 'the certificate'}: ${issue?.message}` };
}
