import { type CordonRecord, concerns } from '../../../src/orchestrator/model/cordon.ts';
import { hold } from '../../kernel/violation.ts';
import type { Sold } from '../replicas/store.ts';

/** I34: nothing is sold where an operator's cordon stands. */
export function isNotCordoned(
  { offerId, region }: Pick<Sold, 'offerId' | 'region'>,
  platform: string,
  standing: readonly CordonRecord[],
  server: string,
): void {
  const on = standing.find((cordon) => concerns(cordon, { offer: offerId, region, platform }));
  hold(
    'I34',
    on === undefined,
    () =>
      `${server} sold ${offerId} in ${region}, where the cordon ${on?.id} on ${on?.kind} ${on?.name} stands`,
  );
}
