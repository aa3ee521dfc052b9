import { describe, expect, it } from 'vitest';
import type { SpanRecord } from '../../src/ports/tracing.ts';
import { openTracing } from '../../src/runtime/tracing/open-tracing.ts';
import { silentLog } from '../support/doubles/log.ts';
import { type ReceivedSpan, startOtlpReceiver, toRecord } from '../support/otlp-receiver.ts';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

const MINUTE_MS = 60_000;
/** So many spans are sent at once. */
const A_BATCH = 512;
async function open(env: Record<string, string>, log = silentLog) {
  const tracing = await openTracing(env, { service: 'berth', version: '1.2.3', log });
  if (tracing === undefined) throw new Error('there are no traces');
  return tracing;
}

const aSpan: SpanRecord = {
  name: 'a',
  kind: 'server',
  startedAt: 1_000,
  endedAt: 1_500,
  attributes: { a: 1 },
};

/** Creates an instance with a request id, has it come to `status` and sends all spans; those of the request and its steps. */
async function traceOf(
  status: string,
  { plan, headers = {} }: { plan?: Plan; headers?: Record<string, string> } = {},
) {
  await using receiver = await startOtlpReceiver();
  const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/` });
  let id: string;
  {
    await using berth = await startPlainOrchestrator(plan, { tracing });
    const reply = await berth.orchestrator.request('POST', '/instances', {
      body: instanceRequest(),
      headers: { 'X-Request-Id': 'req-1', ...headers },
    });
    id = String(reply.body['id']);
    await berth.passUntil(`/instances/${id}`, status);
    await berth.clock.advance(MINUTE_MS);
  }
  await tracing.close();
  const spans = receiver.spans();
  const request = spans.find(({ name }) => name === 'POST /v1/instances') as ReceivedSpan;
  const steps = spans.filter(({ name }) => name.startsWith('step '));
  return { id, spans, request, steps, resource: receiver.resource() };
}

describe('traces', () => {
  it('tell of a request, the steps of what it made and their calls, in one trace at a collector [traces]', async () => {
    const { id, spans, request, steps, resource } = await traceOf('ONLINE');
    expect(resource).toMatchObject({ 'service.name': 'berth', 'service.version': '1.2.3' });
    expect(request.parentSpanId ?? '').toBe('');
    expect(toRecord(request.attributes)).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/v1/instances',
      'http.response.status_code': 201,
      'berth.request_id': 'req-1',
      'berth.instance': id,
    });
    expect(steps.map(({ name }) => name)).toEqual(['step instance create', 'step instance verify']);
    for (const step of steps) {
      expect([step.traceId, step.parentSpanId]).toEqual([request.traceId, request.spanId]);
      expect(toRecord(step.attributes)).toMatchObject({
        'berth.instance': id,
        'berth.request_id': 'req-1',
        'berth.platform': 'default',
      });
    }
    const calls = steps.map(({ spanId }) =>
      spans.filter(({ parentSpanId }) => parentSpanId === spanId).map(({ name }) => name),
    );
    expect(calls).toEqual([['call create'], expect.arrayContaining(['prove ssh'])]);
    expect(toRecord(steps[1]?.attributes ?? [])).toMatchObject({
      'berth.status': 'ONLINE',
      'berth.next': 'finish',
    });
    expect(spans.some(({ name, parentSpanId }) => name === 'call list' && !parentSpanId)).toBe(true);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  it('say why a step failed [traces-of-failures]', async () => {
    const plan: Plan = ({ method }) =>
      method === 'create'
        ? { kind: 'misclaim', code: 'image_missing', sideEffect: 'none', isDone: false }
        : 'none';
    const { spans, steps } = await traceOf('ERROR', { plan });
    const [create] = steps;
    expect(toRecord(create?.attributes ?? [])).toMatchObject({
      'berth.status': 'ERROR',
      'berth.cause': 'image_missing',
    });
    const call = spans.find(({ name }) => name === 'call create');
    for (const span of [create, call])
      expect(span?.status).toMatchObject({ code: 2, message: expect.any(String) });
    expect(toRecord(call?.attributes ?? [])).toMatchObject({ 'berth.outcome': 'image_missing' });
  });

  it('go on with the trace of a caller who names one, and link to that of the steps', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const { request, steps } = await traceOf('ONLINE', { headers });
    expect([request.traceId, request.parentSpanId]).toEqual([traceId, '00f067aa0ba902b7']);
    expect(request.links?.map((link) => link.traceId)).toEqual([steps[0]?.traceId]);
    const { request: other } = await traceOf('ONLINE', { headers: { traceparent: '00-zero-zero-01' } });
    expect(other.traceId).toBe(steps[0]?.traceId);
  });

  it('are none unless a collector is named', async () => {
    for (const env of [{}, { OTEL_SERVICE_NAME: 'x' }])
      expect(await openTracing(env, { service: 'berth', version: '1', log: silentLog })).toBeUndefined();
  });

  it('go to the whole URL of the traces', async () => {
    await using receiver = await startOtlpReceiver();
    const tracing = await open({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces` });
    tracing.requestEnded('req-1', aSpan);
    await tracing.close();
    expect(receiver.spans()).toHaveLength(1);
  });
});

describe('a collector', () => {
  it('that hangs costs the spans alone: the log says so once, and the end waits for it no longer than for a batch [collector-hangs]', async () => {
    await using receiver = await startOtlpReceiver({ hangs: true });
    const warnings: string[] = [];
    const warn = (_fields: object, message: string) => void warnings.push(message);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT: '200' };
    const tracing = await open(env, { ...silentLog, warn: warn as () => undefined });
    const record = (count: number): void => {
      for (let request = 0; request < count; request++) tracing.requestEnded(`req-${request}`, aSpan);
    };
    record(A_BATCH);
    await until('the collector is asked', () => receiver.requests() > 0);
    record(10_000);
    await tracing.close();
    expect(receiver.requests()).toBeLessThan(10);
    expect(warnings).toEqual([
      'the trace collector is unreachable: spans are lost until it is reachable again',
    ]);
  });

  it('that is away costs no more', async () => {
    const receiver = await startOtlpReceiver();
    await receiver[Symbol.asyncDispose]();
    const tracing = await open({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '50',
    });
    tracing.requestEnded('req-1', aSpan);
    await expect(tracing.close()).resolves.toBeUndefined();
  });
});
