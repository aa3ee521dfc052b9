export type Verb =
  | 'create'
  | 'terminate'
  | 'pause'
  | 'resume'
  | 'restart'
  | 'create volume'
  | 'delete volume'
  | 'attach'
  | 'detach'
  | 'resize';

/** Something that a user asked for, and what came of it. Times are milliseconds since the epoch. */
export interface Order {
  verb: Verb;
  /** The id in the path, or that of what was created; undefined: a create whose answer was lost. */
  subject: string | undefined;
  /** Of an attach and a detach. */
  deploymentId?: string;
  /** Of a resize. */
  sizeGb?: number;
  sentAt: number;
  /** Null: the client gave up, or the connection broke. */
  answeredAt: number | null;
  status: number | null;
  /** When a server that was stopped when it was sent went on, and could read it. */
  readableAt?: number;
}

/** Whether it may be carried out: it was accepted, or it is not known what became of it (M: 504, "the request went through"). */
export function mayHappen({ status }: Order): boolean {
  return status === null || status === 504 || isAccepted({ status });
}

/** Until when an order without a clear answer may be carried out. */
export function openUntil({ sentAt, readableAt = sentAt }: Order, givenUpAfterMs: number): number {
  return readableAt + givenUpAfterMs;
}

export function isAccepted({ status }: Pick<Order, 'status'>): boolean {
  return status === 200 || status === 201;
}
