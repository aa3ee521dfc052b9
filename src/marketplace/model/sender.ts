import type { LeaseRecord } from '../../work/lease.ts';
import type { DeploymentIntent, DeploymentRecord } from './deployment-record.ts';

/** A deployment with the intent that was written into it. */
export type Asked = DeploymentRecord & { action: DeploymentIntent };

/**
 * What sends intents in this process. Where it can send one at once, the request writes the first attempt together with
 * the intent: that saves a transaction.
 */
export interface Sender {
  /** The lease under which it sends an intent of the deployment, if it can at once; null: it cannot. */
  leaseFor(deployment: Pick<DeploymentRecord, 'id' | 'providerId'>): LeaseRecord | null;
  /** Sends the first attempt, which is committed. */
  send(asked: Asked): void;
}
