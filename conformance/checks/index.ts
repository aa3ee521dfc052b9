import type { Check } from './check.ts';
import { createChecks } from './create.ts';
import { destroyChecks } from './destroy.ts';
import { instanceChecks } from './instances.ts';
import { liveInstanceChecks } from './live-instance.ts';
import { notFoundChecks } from './not-found.ts';
import { polledReadChecks } from './polled-read.ts';
import { sshChecks } from './ssh.ts';
import { stopStartChecks } from './stop-start.ts';
import { traceChecks } from './trace.ts';

/** Every check, in no order: reports follow requirements.yaml. */
export const CHECKS: readonly Check[] = [
  ...createChecks,
  ...destroyChecks,
  ...instanceChecks,
  ...liveInstanceChecks,
  ...notFoundChecks,
  ...polledReadChecks,
  ...sshChecks,
  ...stopStartChecks,
  ...traceChecks,
];
