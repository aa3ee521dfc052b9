import type { JsonObject } from '../../text/json.ts';
import type { Instance, Session } from '../session.ts';

/** A user of the machine of a plain run who decides what is done with it. */
export interface Tenant {
  /** How long the machine is used, in milliseconds. */
  useMs: number;
  /** Whether it is stopped and started again while it is rented. */
  isPaused: boolean;
  /** How much longer the machine may live, in milliseconds; asked again every few minutes. */
  mayLiveMs(session: Session, instance: Instance): number;
  /** What the user does on the machine while it is ONLINE, until the signal is aborted. */
  visit(
    session: Session,
    online: { instance: Instance; shown: JsonObject },
    signal: AbortSignal,
  ): Promise<void>;
}
