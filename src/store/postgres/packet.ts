import { type Connection, Query, type QueryConfig, type QueryResult } from 'pg';

/** A statement of the driver, with what it does at each message of the protocol: its types do not name that. */
interface DriverQuery {
  name: string | undefined;
  text: string | undefined;
  callback: ((error: Error | null, result?: QueryResult) => void) | undefined;
  prepare(connection: Connection): void;
  submit(connection: Connection): Error | null;
  handleRowDescription(message: unknown): void;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: Connection): void;
  handleEmptyQuery(connection: Connection): void;
  handleError(error: Error, connection: Connection): void;
  handleReadyForQuery(connection: Connection): void;
}

const DriverQuery = Query as unknown as new (config: QueryConfig | string, values?: unknown[]) => DriverQuery;

/** The statements that a connection knows, or will know when the server has read what was sent. */
interface Statements {
  submittedNamedStatements: Record<string, string>;
}

/**
 * Statements that are sent together and answered together: the server sends what it has once, at the end, in place of
 * once for each. If one fails, the server skips the rest of the packet, and those after it fail with the same error.
 */
export class Packet extends DriverQuery {
  readonly #statements: DriverQuery[] = [];
  #answered = 0;
  /** Why a statement cannot be sent: then none is. */
  #refused: Error | undefined;

  constructor() {
    super('');
  }

  add(config: QueryConfig, values: unknown[] | undefined): Promise<QueryResult> {
    const statement = new DriverQuery(config, values);
    this.#statements.push(statement);
    return new Promise((resolve, reject) => {
      statement.callback = (error, result) => {
        if (error === null) resolve(result as QueryResult);
        else {
          this.#refused ??= error;
          reject(error);
        }
      };
    });
  }

  override submit(connection: Connection): Error | null {
    const recorder = recorderOf(connection);
    for (const statement of this.#statements) statement.prepare(recorder);
    const messages = recorder.take();
    if (this.#refused !== undefined) return this.#refused;
    if (connection.stream.writable) connection.stream.write(messages);
    this.#await();
    return null;
  }

  override handleRowDescription(message: unknown): void {
    this.#current?.handleRowDescription(message);
  }

  override handleDataRow(message: unknown): void {
    this.#current?.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: Connection): void {
    const statement = this.#current;
    statement?.handleCommandComplete(message, connection);
    this.#next();
    statement?.handleReadyForQuery(connection);
  }

  override handleEmptyQuery(connection: Connection): void {
    const statement = this.#current;
    this.#next();
    statement?.handleReadyForQuery(connection);
  }

  /** Of the statement that is answered, or of the connection. */
  override handleError(error: Error, connection: Connection): void {
    const { submittedNamedStatements } = connection as unknown as Statements;
    for (const statement of this.#statements.slice(this.#answered)) {
      // The server did not read it, or refused it.
      if (statement.name !== undefined) delete submittedNamedStatements[statement.name];
      statement.handleError(error, connection);
    }
    this.#answered = this.#statements.length;
    this.callback?.(error);
  }

  override handleReadyForQuery(): void {
    this.callback?.(null);
  }

  get #current(): DriverQuery | undefined {
    return this.#statements[this.#answered];
  }

  #next(): void {
    this.#answered++;
    this.#await();
  }

  /** The driver notes under this name that the server knows a statement. */
  #await(): void {
    this.name = this.#current?.name;
    this.text = this.#current?.text;
  }
}

/** A connection that keeps the messages of a packet in place of sending them. */
interface Recorder extends Connection {
  /** What was kept, with the end of the packet, as one buffer: a system call with dozens of small ones costs more. */
  take(): Buffer;
}

const recorders = new WeakMap<Connection, Recorder>();

function recorderOf(connection: Connection): Recorder {
  const known = recorders.get(connection);
  if (known !== undefined) return known;
  let messages: Buffer[] = [];
  const stream = { writable: true, write: (message: Buffer) => messages.push(message) };
  const recorder: Recorder = Object.assign(Object.create(connection), {
    stream,
    // A packet has one, not one for each statement.
    sync: () => undefined,
    take: () => {
      connection.sync.call(recorder);
      const taken = Buffer.concat(messages);
      messages = [];
      return taken;
    },
  });
  recorders.set(connection, recorder);
  return recorder;
}
