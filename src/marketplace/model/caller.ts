/** Who sends a request. What else is known of them is read where it is needed, in the transaction that needs it. */
export interface Caller {
  userId: string;
}
