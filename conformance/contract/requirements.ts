import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { packageRoot } from './package.ts';

const requirement = z
  .strictObject({
    id: z.string().regex(/^[A-Z]+(-[A-Z0-9]+)*-\d{3}$/),
    level: z.enum(['MUST', 'SHOULD']),
    tier: z.enum(['compute', 'storage', 'token']),
    /** The section of the contract that holds the sentence. */
    place: z.string().min(1),
    /** The sentence. */
    text: z.string().min(1),
    /** The requirement in plain words. */
    means: z.string().min(1).optional(),
    /** The usual cause of a failure, and where to look for it. */
    cause: z.string().min(1).optional(),
    /** What a provider may lack, or a run may leave out: reports have a table of them. */
    feature: z.string().min(1).optional(),
    checks: z.array(z.string()).min(1).optional(),
    excluded: z.string().min(1).optional(),
  })
  .refine((row) => (row.checks === undefined) !== (row.excluded === undefined), {
    error: 'has either `checks` or `excluded`',
  })
  .refine((row) => row.excluded !== undefined || (row.means !== undefined && row.cause !== undefined), {
    error: 'a row with checks says what it `means` and the likely `cause` of a failure',
  });

const file = z.strictObject({ contract: z.string(), requirements: z.array(requirement).min(1) });

/** A testable sentence of the contract. */
export type Requirement = z.infer<typeof requirement>;

export interface Requirements {
  /** The contract's own version label. */
  contract: string;
  rows: readonly Requirement[];
  /** SHA-256 of the file, hex. It identifies the set of requirements of a report. */
  digest: string;
}

let known: Requirements | undefined;

/** The package's requirements.yaml. It is read once in a process. */
export function loadRequirements(): Requirements {
  known ??= readRequirements();
  return known;
}

function readRequirements(): Requirements {
  const text = readFileSync(join(packageRoot, 'conformance', 'requirements.yaml'), 'utf8');
  const { contract, requirements } = file.parse(parse(text));
  return { contract, rows: requirements, digest: createHash('sha256').update(text).digest('hex') };
}
