import { createHash } from 'node:crypto';
import {
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../../ports/log.ts';
import type { SpanRecord, Tracing } from '../../ports/tracing.ts';

/** Time limit for exporting a batch of spans, unless OTEL_EXPORTER_OTLP_TIMEOUT sets one. */
const EXPORT_MS = 3_000;
/** Extra time in which the exporter may report its failure. */
const GRACE_MS = 500;

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

type Ids = Pick<SpanContext, 'traceId' | 'spanId'>;
type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Random ids, except for the root span of a request: its ids derive from the request's id, so they need not be stored.
 */
class RequestIds implements IdGenerator {
  /** The ids of the next span. */
  next: Ids | undefined;
  readonly #random = new RandomIdGenerator();

  generateTraceId(): string {
    return this.next?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.next?.spanId ?? this.#random.generateSpanId();
  }
}

/**
 * Sends spans to a collector in batches. At most 2,048 spans are queued. Spans that end while the collector is
 * unavailable are dropped.
 */
export class OtlpTracing implements Tracing {
  readonly #ids = new RequestIds();
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  /** Time limit for one batch, and for the last batches on shutdown. */
  readonly #endMs: number;

  constructor(
    url: string,
    env: Environment,
    { service, version, log }: { service: string; version: string; log: Log },
  ) {
    const own = resourceFromAttributes({ 'service.name': service, 'service.version': version });
    const timeoutMillis = timeoutOf(env);
    this.#endMs = timeoutMillis + GRACE_MS;
    const exporter = new OTLPTraceExporter({ url, timeoutMillis });
    this.#provider = new TracerProvider({
      resource: defaultResource()
        .merge(own)
        .merge(detectResources({ detectors: [envDetector] })),
      idGenerator: this.#ids,
      spanLimits: { attributeValueLengthLimit: 1_000 },
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: tellingOfFailure(exporter, log),
          exportTimeoutMillis: this.#endMs,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer('berth', version);
  }

  requestEnded(requestId: string, span: SpanRecord, traceparent?: string): void {
    const ids = idsOf(requestId);
    const caller = traceparent === undefined ? undefined : parseTraceparent(traceparent);
    if (caller === undefined) {
      this.#ids.next = ids;
      this.#write(span, ROOT_CONTEXT);
    } else this.#write(span, trace.setSpanContext(ROOT_CONTEXT, caller), rootOf(ids));
  }

  workEnded(requestId: string | undefined, span: SpanRecord): void {
    const parent =
      requestId === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, rootOf(idsOf(requestId)));
    this.#write(span, parent);
  }

  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#endMs);
    });
    await Promise.race([this.#provider.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
  }

  #write(
    { name, kind, startedAt, endedAt, attributes, problem, children = [] }: SpanRecord,
    parent: Context,
    linked?: SpanContext,
  ): void {
    const span = this.#tracer.startSpan(
      name,
      {
        kind: kinds[kind],
        startTime: startedAt,
        attributes: Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)),
        ...(linked && { links: [{ context: linked }] }),
      },
      parent,
    );
    this.#ids.next = undefined;
    if (problem !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: problem });
    for (const child of children) this.#write(child, trace.setSpan(ROOT_CONTEXT, span));
    span.end(Math.max(startedAt, endedAt));
  }
}

function idsOf(requestId: string): Ids {
  const hash = createHash('sha256').update(requestId).digest('hex');
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48) };
}

/** The root span of a request's trace, as a parent. */
function rootOf(ids: Ids): SpanContext {
  return { ...ids, isRemote: true, traceFlags: TraceFlags.SAMPLED };
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** Parses the caller's span from a W3C Trace Context header. Undefined if the header is invalid. */
function parseTraceparent(header: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(header) ?? [];
  const caller = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED };
  return isSpanContextValid(caller) && !header.startsWith('ff') ? { ...caller, isRemote: true } : undefined;
}

function timeoutOf(env: Environment): number {
  return Number(env['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT'] || env['OTEL_EXPORTER_OTLP_TIMEOUT']) || EXPORT_MS;
}

/** Logs once that spans are lost, and once that they are exported again. */
function tellingOfFailure(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const isFailed = result.error !== undefined;
        if (isFailed && !isFailing)
          log.warn(
            { err: result.error },
            'the trace collector is unreachable: spans are lost until it is reachable again',
          );
        if (!isFailed && isFailing) log.info({}, 'the trace collector is reachable again');
        isFailing = isFailed;
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}
