export { lexer } from "marked";
export type { Token, Tokens } from "marked";
