export { lexer, Tokenizer } from "marked";
export type { Token, Tokens } from "marked";
