import type { ReconcileContext } from '../platform/context.ts';

/** What a step of the reconciler uses. */
export interface StepContext extends ReconcileContext {
  /** When this process started: older rows were handled by another one. */
  startedAt: number;
}
