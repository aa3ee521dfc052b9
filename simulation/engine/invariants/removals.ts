import { generationOf } from '../../../src/orchestrator/model/attempt.ts';
import type { OwnerRef } from '../../../src/orchestrator/model/platform-driver.ts';
import type { PlatformResource } from '../../../src/orchestrator/model/platform-resource.ts';
import { hold } from '../../kernel/violation.ts';

/**
 * I36: a command that removes a machine, a disk or a volume is about a row with an order to destroy it, or about an attempt
 * that a newer one took the place of. `row`: undefined: no row was ever about it. `isGivenUp`: the core has ordered its removal
 * while another attempt was that of the row: it is a copy that was not completed, or the database has forgotten that since.
 */
export function removalIsOrdered(
  { ref, what, line, isGivenUp = false }: { ref: OwnerRef; what: string; line: string; isGivenUp?: boolean },
  row: Pick<PlatformResource, 'ownerRef' | 'destroyOrder'> | undefined,
): void {
  const isSuperseded = row !== undefined && (generationOf(ref) < generationOf(row.ownerRef) || isGivenUp);
  hold(
    'I36',
    isSuperseded || (row !== undefined && row.destroyOrder !== null),
    () =>
      `"${line}" removed ${what}, and ${row === undefined ? 'no row is about it' : 'nobody asked for its end'}`,
    [ref],
  );
}
