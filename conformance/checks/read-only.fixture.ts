import { Evidence } from '../evidence/evidence.ts';
import { type Finding, MissingEvidence } from '../evidence/finding.ts';
import type { Exchange, RunRecord, TranscriptRecord } from '../transcript/records.ts';
import { CHECKS } from './index.ts';

const run: RunRecord = {
  kind: 'run',
  format: 1,
  suite: '0',
  requirements: '',
  runId: 'r',
  baseUrl: 'https://provider.test/v1',
  level: 'full',
  startedAt: '2026-01-01T12:00:00Z',
  userAgent: 'u',
  settings: {
    pollIntervalMs: 10_000,
    readyTimeoutMs: 600_000,
    maxCostUsd: 1,
    maxMinutes: 10,
    hasSecondKey: false,
  },
  roundTripsMs: [],
};

export type Answer = { status?: number; body?: unknown; headers?: Record<string, string> };

/** A transcript of consecutive reads, each with its step, path and answer. */
export function recorded(...reads: readonly [step: string, path: string, answer?: Answer][]): Exchange[] {
  return reads.map(([step, path, answer], index) => ({
    kind: 'exchange',
    n: index + 1,
    step,
    sentAt: index,
    endedAt: index + 1,
    wall: '2026-01-01T12:00:00Z',
    requestId: 'r',
    credential: 'api key',
    request: { method: 'GET', path, headers: {} },
    ...(answer === undefined
      ? { failure: { kind: 'timeout' as const, message: 'no answer within 30000 ms' } }
      : {
          answer: {
            status: answer.status ?? 200,
            headers: answer.headers ?? { 'content-type': 'application/json' },
            body: answer.body === undefined ? '' : JSON.stringify(answer.body),
            firstByteMs: 1,
          },
        }),
  }));
}

export function judged(id: string, records: readonly TranscriptRecord[], baseUrl = run.baseUrl): Finding {
  const check = CHECKS.find((one) => one.id === id);
  if (check === undefined) throw new Error(`there is no check ${id}`);
  try {
    return check.judge(new Evidence([{ ...run, baseUrl }, ...records]));
  } catch (error) {
    if (error instanceof MissingEvidence) return error.finding;
    throw error;
  }
}

export const offers = (...ids: readonly string[]): Answer => offersWith(ids);

export function offersWith(ids: readonly string[]): Answer {
  return { body: { configurations: ids.map((id) => ({ id, available: true, regions: ['eu-north'] })) } };
}
