/** A finished operation, for a trace. Times are milliseconds since the Unix epoch. */
export interface SpanRecord {
  name: string;
  kind: 'server' | 'client' | 'internal';
  startedAt: number;
  endedAt: number;
  /** Undefined values are omitted. */
  attributes: Readonly<Record<string, string | number | undefined>>;
  /** The cause of a failure. */
  problem?: string | undefined;
  children?: readonly SpanRecord[];
}

/** Sends traces. One trace holds a request and the steps that the request caused. */
export interface Tracing {
  /** A request was answered. `traceparent`: the caller's trace header; the span then joins that trace. */
  requestEnded(requestId: string, span: SpanRecord, traceparent?: string): void;
  /** A step has ended. `requestId`: the request that caused it; undefined: none. */
  workEnded(requestId: string | undefined, span: SpanRecord): void;
  /** Sends the remaining spans. Takes a few seconds at most, and never rejects. */
  close(): Promise<void>;
}
