import type { Connection as AnyConnection } from '../../queries/connection.ts';
import type * as postgresSchema from '../postgres/schema.ts';

/** The tables that both databases have, by the names of the schema files. */
export type Tables = Omit<typeof postgresSchema, 'requestCounts'>;

export type Connection = AnyConnection<Tables>;
