import { z } from 'zod';
import type { Names } from '../http/identity.ts';
import type { LedgerLine } from './ledger.ts';

const entry = z.object({
  n: z.int().min(1),
  type: z.enum(['instance', 'volume']),
  name: z.string(),
  step: z.string(),
  state: z.enum(['intended', 'made', 'refused', 'unknown', 'gone']),
  id: z.string().min(1).exactOptional(),
  region: z.string().exactOptional(),
  pricePerHour: z.number().exactOptional(),
  intendedAt: z.number(),
  goneAt: z.number().exactOptional(),
  note: z.string().exactOptional(),
  isAnswered: z.literal(true).exactOptional(),
});

const processIdentity = z.object({
  pid: z.int().min(1),
  host: z.string(),
  startedAt: z.string().exactOptional(),
});

const ledgerLine = z.discriminatedUnion('line', [
  z.object({
    line: z.literal('run'),
    runId: z.string().regex(/^[a-z0-9]{4,32}$/),
    baseUrl: z.string().min(1),
    startedAt: z.string(),
    keyPrint: z.string().exactOptional(),
    plain: z
      .object({ seed: z.string().min(1), installation: z.string().regex(/^[0-9a-f]{8}$/) })
      .exactOptional(),
    process: processIdentity.exactOptional(),
  }),
  z.object({ line: z.literal('entry'), entry }),
  z.object({ line: z.literal('closed') }),
]);

/**
 * Parses one line of a ledger. Undefined if a crash truncated it or another program wrote it. An entry without an id is
 * later found by its name, so a name that does not belong to this run is rejected.
 */
export function parseLedgerLine(text: string, names?: Names): LedgerLine | undefined {
  const { data: line } = ledgerLine.safeParse(toJson(text));
  if (line?.line !== 'entry') return line;
  const { id, name } = line.entry;
  return id === undefined && names?.isOwn(name) !== true ? undefined : line;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
