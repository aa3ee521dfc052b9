import type { WorkMetrics } from '../../orchestrator/http/metrics.ts';
import type { EndedStep, Telemetry, TimedCall } from '../../orchestrator/model/telemetry.ts';
import type { CallCounts } from '../../orchestrator/operate/figures/call-counts.ts';
import type { SpanRecord, Tracing } from '../../ports/tracing.ts';

/** Reports the work of each platform to the metrics, the figures over time and, if enabled, the traces. */
export function telemetryOf(
  metrics: WorkMetrics,
  calls: CallCounts | undefined,
  tracing: Tracing | undefined,
): (platform: string) => Telemetry {
  return (platform) => {
    const counted = metrics.of(platform);
    return {
      called: (call, isOfStep) => {
        counted.called(call, isOfStep);
        calls?.count(platform, call);
        if (!isOfStep) tracing?.workEnded(undefined, toCallSpan(platform, call));
      },
      stepEnded: (step) => {
        counted.stepEnded(step);
        tracing?.workEnded(step.requestId, toStepSpan(platform, step));
      },
    };
  };
}

/** Outcomes of a driver's calls and of SSH proofs that are not failures. */
const SOUND = new Set(['done', 'pending', 'observed', 'gone', 'listed', 'counted', 'proved']);

function toCallSpan(platform: string, { call, outcome, at, tookMs, detail }: TimedCall): SpanRecord {
  return {
    name: `${call === 'ssh' ? 'prove' : 'call'} ${call}`,
    kind: 'client',
    startedAt: at,
    endedAt: at + tookMs,
    attributes: { 'berth.platform': platform, 'berth.call': call, 'berth.outcome': outcome },
    ...(!SOUND.has(outcome) && { problem: detail ?? outcome }),
  };
}

function toStepSpan(
  platform: string,
  {
    lease: { resourceKind, resourceId, kind, attempt },
    requestId,
    begunAt,
    endedAt,
    calls,
    next,
    problem,
    verdict,
  }: EndedStep,
): SpanRecord {
  const cause = verdict?.status === 'ERROR' ? verdict.cause : undefined;
  return {
    name: `step ${resourceKind} ${kind}`,
    kind: 'internal',
    startedAt: begunAt,
    endedAt,
    attributes: {
      [`berth.${resourceKind}`]: resourceId,
      'berth.platform': platform,
      'berth.step': kind,
      'berth.attempt': attempt,
      'berth.next': next,
      'berth.request_id': requestId,
      'berth.status': verdict?.status,
      'berth.cause': cause,
    },
    problem: problem ?? cause,
    children: calls.map((call) => toCallSpan(platform, call)),
  };
}
