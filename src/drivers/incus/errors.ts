import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';
import { failed, refused } from '../../platform-model/steps.ts';
import { NotReached } from '../../ports/errors.ts';

/** Incus refused a request, or its operation failed. */
export class IncusRefusal extends Error {
  override readonly name = 'IncusRefusal';
  readonly status: number;
  readonly method: string;

  constructor(status: number, message: string, method: string) {
    super(message);
    this.status = status;
    this.method = method;
  }
}

/**
 * Classifies a refusal. The first row that matches counts, by words in the message or by status. `end` matches the
 * last part of the message: Incus writes the cause after the action.
 */
const table: readonly { words?: RegExp; end?: RegExp; status?: number; code: FailureCode }[] = [
  // Incus reports these with 400 or 500, and in failed operations.
  {
    words:
      /no space left|disk quota exceeded|not enough space|insufficient space|not enough uid\/gid available|read-only file system/i,
    code: 'capacity',
  },
  { words: /reached (the )?maximum (number of|aggregate)/i, code: 'quota' },
  {
    words: /no suitable cluster member|couldn't find a cluster member|no online cluster members/i,
    code: 'capacity',
  },
  {
    end: /^(image( alias| source)? not found|image not provided for instance creation)$/i,
    code: 'image_missing',
  },
  // Resources that a create or a start names besides the instance.
  {
    end: /^((project|profile|storage pool|network|network ACL|cluster group) not found|requested profile "" doesn't exist)$/i,
    code: 'invalid',
  },
  {
    words: /instance type .*not (operational|supported)|virtual machines? (are|is) not supported/i,
    code: 'unsupported',
  },
  {
    words:
      /already (exists|running|stopped|frozen)|instance is(n't)? running|is busy|in progress|being (created|deleted|started)|ETag doesn't match/i,
    code: 'conflict',
  },
  {
    words:
      /cluster member.*(offline|unreachable|is evacuated)|not leader|no leader|database is locked|connection refused|context deadline|driver: bad connection|no route to host|timed? ?out|isn't ready|invalid pid|shutting down|EOF$/i,
    code: 'transient',
  },
  { words: /\b(gpu|pci|iommu|vfio)\b/i, code: 'device_fault' },
  { status: 400, code: 'invalid' },
  { status: 401, code: 'auth' },
  { status: 403, code: 'auth' },
  { status: 404, code: 'gone' },
  { status: 409, code: 'conflict' },
  { status: 412, code: 'conflict' },
  { status: 423, code: 'conflict' },
  { status: 429, code: 'transient' },
  { status: 500, code: 'internal' },
  { status: 502, code: 'transient' },
  { status: 503, code: 'transient' },
  { status: 504, code: 'transient' },
];

export function classify({ status, message }: Pick<IncusRefusal, 'status' | 'message'>): FailureCode {
  const text = withoutNames(message);
  const cause = text.split(': ').at(-1) ?? '';
  const fits = ({ words, end, status: of }: (typeof table)[number]): boolean =>
    (words?.test(text) ?? false) || (end?.test(cause) ?? false) || of === status;
  return table.find(fits)?.code ?? 'internal';
}

/**
 * Removes names chosen by operators and tenants, since an instance may be named `gpu` or `image`. Incus quotes names,
 * and a pool's name appears in paths. Devices that Berth names are kept.
 */
function withoutNames(message: string): string {
  return message
    .replaceAll(/\bdevice "gpu\d+"/gi, 'device of a GPU')
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replaceAll(/(?<!\S)\/(?!sys\/|dev\/)\S+/g, '/');
}

/** @throws {Error} if the outcome is unknown to the core */
export function toFailure(error: unknown): Step<never> {
  if (error instanceof NotReached) return failed('transient', error.message);
  if (!(error instanceof IncusRefusal)) throw error;
  return refused(classify(error), `Incus: ${error.message}`);
}

/**
 * Whether the resource, its project or its pool does not exist. Check the other two before concluding that the resource
 * is gone.
 */
export function isNotFound(error: unknown): boolean {
  return error instanceof IncusRefusal && error.status === 404;
}

export function isConflict(error: unknown): boolean {
  return error instanceof IncusRefusal && classify(error) === 'conflict';
}

/** Returns the reply. Undefined if another change of the resource is under way: read it again and repeat. */
export function unlessConflict<T>(reply: Promise<T>): Promise<T | undefined> {
  return reply.catch((error) => {
    if (isConflict(error)) return undefined;
    throw error;
  });
}
