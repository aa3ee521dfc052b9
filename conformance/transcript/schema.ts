import { z } from 'zod';
import { LEVELS, type TranscriptRecord } from './records.ts';

/** Milliseconds, or a count. */
const amount = z.number().min(0);
const texts = z.record(z.string(), z.string());
const wall = z.iso.datetime();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const settings = z.object({
  pollIntervalMs: amount,
  readyTimeoutMs: amount,
  maxCostUsd: amount,
  maxMinutes: amount,
  offer: z.string().exactOptional(),
  region: z.string().exactOptional(),
  race: z.object({ offer: z.string(), units: z.int().min(1) }).exactOptional(),
  hasSecondKey: z.boolean(),
  hasOtherAccountKey: z.literal(true).exactOptional(),
  observeMs: amount.exactOptional(),
  exhaustive: z.boolean().exactOptional(),
  allowPrivate: z.boolean().exactOptional(),
  restarts: z.literal(true).exactOptional(),
  plain: z.literal(true).exactOptional(),
  installation: z
    .string()
    .regex(/^[0-9a-f]{8}$/)
    .exactOptional(),
});

const run = z.object({
  kind: z.literal('run'),
  format: z.literal(1),
  suite: z.string(),
  requirements: z.string(),
  runId: z.string(),
  baseUrl: z.url({ protocol: /^https?$/ }).refine((url) => URL.canParse(url)),
  level: z.enum(LEVELS),
  seed: z.string().exactOptional(),
  nonce: z.string().exactOptional(),
  isChained: z.literal(true).exactOptional(),
  only: z.array(z.string()).exactOptional(),
  startedAt: wall,
  userAgent: z.string(),
  settings,
  roundTripsMs: z.array(amount),
});

const exchange = z.object({
  kind: z.literal('exchange'),
  n: z.int().min(1),
  step: z.string(),
  sentAt: amount,
  endedAt: amount,
  wall,
  requestId: z.string(),
  tlsKey: sha256.exactOptional(),
  credential: z.enum(['api key', 'second api key', 'other account key', 'access token', 'none', 'altered']),
  request: z.object({
    method: z.string(),
    path: z.string().startsWith('/'),
    headers: texts,
    body: z.string().exactOptional(),
  }),
  answer: z
    .object({
      status: z.int().min(0).max(999),
      headers: texts,
      body: z.string(),
      firstByteMs: amount,
      leftOut: z.int().min(1).exactOptional(),
    })
    .exactOptional(),
  failure: z
    .object({
      kind: z.enum(['dns', 'connect', 'tls', 'reset', 'timeout', 'too_large', 'not_http', 'interrupted']),
      message: z.string(),
    })
    .exactOptional(),
  superseded: z.literal(true).exactOptional(),
});

const ssh = z.object({
  kind: z.literal('ssh'),
  n: z.int().min(1),
  step: z.string(),
  sentAt: amount,
  endedAt: amount,
  instanceId: z.string(),
  key: z.enum(['first', 'second', 'third', 'other', 'foreign']),
  host: z.string(),
  port: z.number(),
  username: z.string(),
  command: z.string(),
  rung: z.enum(['resolve', 'connect', 'handshake', 'authenticate', 'execute', 'done']),
  message: z.string().exactOptional(),
  hostKey: z.string().exactOptional(),
  exitCode: z.number().exactOptional(),
  stdout: z.string().exactOptional(),
});

const restart = z.object({
  kind: z.literal('restart'),
  sentAt: amount,
  endedAt: amount,
  exitCode: z.int().exactOptional(),
  message: z.string().exactOptional(),
  output: z.string(),
});

const skipped = z.object({
  kind: z.literal('skipped'),
  steps: z.array(z.string()),
  reason: z.string(),
  capability: z.string().exactOptional(),
});

const resource = z.object({
  kind: z.literal('resource'),
  entry: z.int().min(1),
  type: z.enum(['instance', 'volume']),
  name: z.string(),
  id: z.string().exactOptional(),
  step: z.string(),
  state: z.enum(['made', 'refused', 'unknown', 'gone']),
  at: amount,
  pricePerHour: z.number().exactOptional(),
  note: z.string().exactOptional(),
});

const end = z.object({
  kind: z.literal('end'),
  at: amount,
  reason: z.enum([
    'completed',
    'interrupted',
    'out of time',
    'target lost',
    'kept',
    'fault of the suite',
    'ledger not written',
  ]),
  detail: z.string().exactOptional(),
});

const record = z.discriminatedUnion('kind', [run, exchange, ssh, restart, skipped, resource, end]);

/** Validates a record; on failure returns the first problem. */
export function parseRecord(value: unknown): { record: TranscriptRecord } | { problem: string } {
  const parsed = record.safeParse(value);
  if (parsed.success) return { record: parsed.data };
  const [issue] = parsed.error.issues;
  const path = issue?.path.join('.') ?? '';
  return { problem: path === '' ? (issue?.message ?? 'it is none') : `${path}: ${issue?.message}` };
}
