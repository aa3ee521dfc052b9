/** Something that has ended, as a trace tells of it. Times are milliseconds since the Unix epoch. */
export interface SpanRecord {
  name: string;
  kind: 'server' | 'client' | 'internal';
  startedAt: number;
  endedAt: number;
  /** Those that are undefined are left out. */
  attributes: Readonly<Record<string, string | number | undefined>>;
  /** Why it failed. */
  problem?: string | undefined;
  children?: readonly SpanRecord[];
}

/** What belongs together is in one trace: a request, and the steps of what it made. */
export interface Tracing {
  /** The request of an id has been answered. `traceparent`: the header of a caller that traces, whose trace it is in then. */
  requestEnded(requestId: string, span: SpanRecord, traceparent?: string): void;
  /** Work has ended, of what the request of an id made; undefined: of no request. */
  workEnded(requestId: string | undefined, span: SpanRecord): void;
  /** Sends what is left. Takes no more than some seconds, and never rejects. */
  close(): Promise<void>;
}
