import { type Connection, Query, type QueryConfig, type QueryResult } from 'pg';

/** A statement of the driver, with its handlers for protocol messages, which the driver's types omit. */
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

/** The prepared statements of a connection, including those in requests that the server has not read yet. */
interface Statements {
  submittedNamedStatements: Record<string, string>;
}

/**
 * Statements that are sent and answered together: the server sends its output once, at the end. If one fails, the
 * server skips the rest of the packet, and the later statements fail with the same error.
 */
export class Packet extends DriverQuery {
  readonly #statements: DriverQuery[] = [];
  #answered = 0;
  /** The reason why a statement cannot be sent. If there is one, no statement is sent. */
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

  /** Handles an error of the current statement or of the connection. */
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

  /** The driver records under this name that the server has prepared a statement. */
  #await(): void {
    this.name = this.#current?.name;
    this.text = this.#current?.text;
  }
}

/** A connection that records the messages of a packet instead of sending them. */
interface Recorder extends Connection {
  /**
   * The recorded messages and the end of the packet, as one buffer: one system call is cheaper than dozens of small
   * ones.
   */
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
    // A packet has one sync message, not one for each statement.
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
